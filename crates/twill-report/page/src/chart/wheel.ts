// How far a turn of the wheel zooms.

/** As a power of two. A pinch comes as many small turns with Ctrl, a notch of a mouse's wheel as one large one. */
export function wheelPower(event: WheelEvent): number {
  const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * 25;
  const pinch = event.ctrlKey && Math.abs(pixels) < 30;
  return -pixels * (pinch ? 0.01 : 0.004);
}
