r"""stylised: plain training on the union of the data set and a second version of it whose texture is uninformative.

.. math::  L(\theta) = \frac1{|D| + |D'|} \sum_{i \in D \cup D'} \mathrm{CE}_i

`second` is any source with the same classes and shape; its training rows are added. For ImageNet the papers make it by style
transfer (AdaIN with paintings as styles).

Source: Geirhos et al., "ImageNet-trained CNNs are biased towards texture", ICLR 2019; a baseline of Bahng et al., ICML 2020.
Differs: the user provides the stylised images; no style transfer is done here.
"""

import dataclasses
from dataclasses import dataclass

from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.sources import load
from unskew.data.union import union
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.records import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class StylisedConfig:
    second: str = ""  # source whose training rows are added


class Stylised(Method):
    Config = StylisedConfig

    @classmethod
    def reads_inputs(cls, cfg: StylisedConfig) -> bool:
        return True

    @classmethod
    def training_data(cls, cfg: StylisedConfig, data: DataSet) -> DataSet:
        if not cfg.second:
            raise UserError(
                "stylised needs a second source, such as a folder of stylised images with the same classes: second=SOURCE"
            )
        reading = None if data.reading is None else dataclasses.replace(data.reading, bias=(), noise=0.0)
        return union(data, load(cfg.second, reading))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return {"ce": task_loss(self.predict(batch.x), batch.y).mean()}
