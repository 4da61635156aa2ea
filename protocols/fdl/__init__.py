"""FDL, the frame and its devices."""
