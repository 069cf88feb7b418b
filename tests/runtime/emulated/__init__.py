"""A CTA of a Blackwell GPU, as the PTX ISA describes it: enough to run kernels in PTX, and slow."""
