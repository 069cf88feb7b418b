// What the engine offers: examples, and machines with the numbers that sliders begin with.

export interface Example {
  name: string;
  title: string;
  text: string;
}

export interface Machine {
  name: string;
  description: string;
  units: string[];
  shared_bytes: number;
  registers_per_thread: number;
  compute_groups: number;
}

export interface Offered {
  examples: Example[];
  machines: Machine[];
  twill: string;
}
