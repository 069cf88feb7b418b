// Time folded modulo the initiation interval.

/** A part of a stretch of time within one interval. */
export interface Piece {
  start: number;
  end: number;
  /** It goes on from the interval before. */
  fromLeft: boolean;
  /** It goes on in the next interval. */
  toRight: boolean;
}

const MOST_PIECES = 6;

/** The parts of `[start, start + cycles)` within `[0, interval)`; at most six. */
export function fold(start: number, cycles: number, interval: number): Piece[] {
  const first = ((start % interval) + interval) % interval;
  const end = first + Math.max(1, cycles);
  const pieces: Piece[] = [];
  for (let from = 0; from < end && pieces.length < MOST_PIECES; from += interval) {
    const begin = Math.max(from, first);
    const stop = Math.min(end, from + interval);
    if (stop > begin) {
      pieces.push({ start: begin - from, end: stop - from, fromLeft: begin > first, toRight: stop < end });
    }
  }
  return pieces;
}

/** Puts stretches that overlap into different lanes; returns the number of lanes. Sets `lane`. */
export function pack<T extends { start: number; end: number; lane: number }>(bars: T[]): number {
  const ends: number[] = [];
  const order = [...bars].sort((a, b) => a.start - b.start || b.end - a.end);
  for (const bar of order) {
    let lane = ends.findIndex((end) => end <= bar.start);
    if (lane < 0) lane = ends.length;
    ends[lane] = bar.end;
    bar.lane = lane;
  }
  return Math.max(1, ends.length);
}
