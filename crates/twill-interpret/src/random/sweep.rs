//! Random kernels without what nobody reads.

use super::recipe::{Recipe, Step};

impl Step {
    /// The values that it reads.
    fn reads(&mut self) -> Vec<&mut usize> {
        match self {
            Step::Load(_) | Step::LoadRows(_) => Vec::new(),
            Step::Dot(a, b, sum) => [a, b].into_iter().chain(sum).collect(),
            Step::Combine(_, a, b) | Step::WithRows(_, a, b) => vec![a, b],
            Step::Transpose(a)
            | Step::Power(a)
            | Step::Scale(a, _)
            | Step::Reduce(_, a)
            | Step::Halve(a)
            | Step::Store(a)
            | Step::Add(a) => vec![a],
        }
    }
}

impl Recipe {
    /// Leaves out what nobody reads, as Triton's compiler does.
    pub(super) fn sweep(&mut self) {
        let (carried, first) = (self.carried.len(), self.carried.len() + self.outer.len());
        let mut is_used = vec![false; first + self.steps.len()];
        self.carried.iter().for_each(|c| is_used[c.next] = true);
        for (k, step) in self.steps.iter_mut().enumerate().rev() {
            if is_used[first + k] || matches!(step, Step::Store(_) | Step::Add(_)) {
                is_used[first + k] = true;
                step.reads().into_iter().for_each(|v| is_used[*v] = true);
            }
        }
        is_used[..carried].fill(true);
        let numbers: Vec<usize> = is_used
            .iter()
            .scan(0, |next, used| {
                *next += usize::from(*used);
                Some(next.saturating_sub(1))
            })
            .collect();
        let mut k = carried;
        self.outer.retain(|_| {
            k += 1;
            is_used[k - 1]
        });
        let mut k = first;
        self.steps.retain(|_| {
            k += 1;
            is_used[k - 1]
        });
        for step in &mut self.steps {
            step.reads().into_iter().for_each(|v| *v = numbers[*v]);
        }
        self.carried.iter_mut().for_each(|c| c.next = numbers[c.next]);
        self.sweep_parameters();
    }

    /// Leaves out parameters that nothing is loaded through.
    fn sweep_parameters(&mut self) {
        let (mut sources, mut vectors) = (Vec::new(), 0);
        let all = std::mem::take(&mut self.sources);
        let mut keep = |source: &mut usize| {
            sources.push(all[*source]);
            *source = sources.len() - 1;
        };
        self.outer.iter_mut().for_each(&mut keep);
        for step in &mut self.steps {
            match step {
                Step::Load(source) => keep(source),
                Step::LoadRows(vector) => {
                    *vector = vectors;
                    vectors += 1;
                }
                _ => {}
            }
        }
        (self.sources, self.vectors) = (sources, vectors);
    }
}
