"""CTAs of a Hopper or Blackwell GPU, as the PTX ISA describes them: enough to run kernels in PTX, and slow."""
