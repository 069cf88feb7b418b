"""A GPU's clock that only tests move, with events like torch's."""


class Clock:
    def __init__(self):
        self.now, self.done, self.events = 0.0, 0.0, 0

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
