"""The one-step microscope: a step is run again with every operation checked."""
