// The buttons that zoom a chart.

interface Properties {
  /** The zoomed element's name for screen readers. */
  label?: string;
  zoomBy: (factor: number) => void;
  reset: () => void;
}

/** Out, in, and all of it. */
export function ZoomButtons({ label = "Zoom", zoomBy, reset }: Properties) {
  return (
    <span class="buttons" role="group" aria-label={label}>
      <button type="button" aria-label="Zoom out" onClick={() => zoomBy(1 / 1.5)}>
        −
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => zoomBy(1.5)}>
        +
      </button>
      <button type="button" onClick={reset}>
        Reset
      </button>
    </span>
  );
}
