r"""advised: what an audit recommends: a trial first, then the method that it supports, or plain training.

.. math::
    f = \begin{cases} f_\text{robust} & \text{if the trial supports it} \\ f_\text{erm} & \text{else} \end{cases}

The trial is that of `unskew audit` (linear layers on features, held out): balancing against the suspected shortcut, or taking it out
of small images and clips, must help where the shortcut tells nothing, and some simple representation must explain which rows a
simple model gets wrong. Photographs and vectors then get `last_layer weights=opinion`, small images and clips `independence` or
`neutralise`, whichever gained more in the trial; plain training is `last_layer weights=plain`
for the former, `erm` for the latter. No bias labels are used. What was decided, and
why, is printed and kept in OUT-trial.json.

Source: ours.
Differs: nothing to differ from.
"""

from dataclasses import dataclass

from unskew.core import progress
from unskew.core.files import write_json
from unskew.methods._contract import Stage
from unskew.records import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """No settings."""


def train(stage: Stage, cfg: Config) -> Run:
    advice = stage.advice()
    write_json(stage.beside("trial.json"), {"method": advice.method, "settings": dict(advice.settings), **advice.why})
    progress.say(f"advised: {advice.method}: {advice.reason}")
    return stage.train(stage.out, advice.method, advice.settings)
