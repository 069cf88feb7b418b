"""A GPU's clock that only tests move, with events like torch's."""


from twill_gpu.contest import SPIN_MILLISECONDS, Gpu


class Clock:
    spin = SPIN_MILLISECONDS

    def __init__(self):
        self.now, self.done, self.events, self.spins = 0.0, 0.0, 0, 0
        self.is_idle = True

    def gpu(self, is_capturing=lambda: False):
        """What a contest needs of torch, with this clock."""
        return Gpu(self.event, is_capturing, lambda: self.is_idle, self.wait)

    def wait(self):
        self.spins += 1
        self.now += self.spin

    def event(self):
        self.events += 1
        return Event(self)

    def run(self, milliseconds):
        self.now += milliseconds

    def fail(self):
        raise MemoryError

    def synchronize(self):
        self.done = self.now


class Event:
    def __init__(self, clock):
        self._clock, self._at = clock, None

    def record(self):
        self._at = self._clock.now

    def query(self):
        return self._at <= self._clock.done

    def elapsed_time(self, end):
        return end._at - self._at
