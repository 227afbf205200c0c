"""A small set of clips and the settings of a narrow network."""

CLIPS = "moving-digits:base=digits,rows=300,size=24,noise_std=0"
NARROW = {"model.width": 4, "train.steps": 3, "train.batch": 32}
