"""One file, one question that `evaluate` can ask of a run beside its accuracy by group, with the record that answers it."""
