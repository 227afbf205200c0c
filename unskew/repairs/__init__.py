"""One file, one repair: from rows to a weight for each, for any training code. The formulas can be imported from here."""

from unskew.data.table_sampler import sampler
from unskew.repairs.aflite import aflite
from unskew.repairs.balance import balance
from unskew.repairs.denoise import denoise
from unskew.repairs.gradients import gradient_probabilities
from unskew.repairs.inverse_frequency import inverse_frequency
from unskew.repairs.repair import repair_weights
from unskew.stats.select import select

__all__ = ["aflite", "balance", "denoise", "gradient_probabilities", "inverse_frequency", "repair_weights", "sampler", "select"]
