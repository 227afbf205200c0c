"""The exit status of the command line."""

import os
import shutil
import signal
import subprocess
import sys
import time


def test_ctrl_c_stops_with_its_own_status_and_the_run_goes_on(tmp_path):
    command = [sys.executable, "-m", "unskew", "train", "toy", "train.steps=3000", "train.batch=32", "--out", str(tmp_path / "r")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    while not (tmp_path / "r" / "state.safetensors").exists():
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in said
    assert "Traceback" not in said
    assert "resuming at step" in subprocess.run(command, capture_output=True, text=True, check=True).stderr
    shutil.rmtree(tmp_path / "r")
