// The zoom factor of a wheel movement.

/** As a power of two. A pinch sends many small wheel events with Ctrl, a notch of a mouse's wheel one large one. */
export function wheelPower(event: WheelEvent): number {
  const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * 25;
  const pinch = event.ctrlKey && Math.abs(pixels) < 30;
  return -pixels * (pinch ? 0.01 : 0.004);
}
