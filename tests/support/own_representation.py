"""A user's own representation: the first pixel."""

from dataclasses import dataclass

PIXELS, CONTENT, VARIANTS = True, False, ({},)


@dataclass(frozen=True)
class Config:
    pass


def phrase(cfg):
    return "the first pixel"


def applies(data, cfg):
    return ""


def features(data, index, x, cfg):
    return x[:, 0, 0, 0]
