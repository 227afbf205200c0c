"""One file per question that `evaluate` can ask of a run besides accuracy by group, with the record that answers it."""
