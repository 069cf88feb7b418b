// A figure with its name.

interface Properties {
  name: string;
  value?: string;
  note?: string;
  /** The note below it. */
  more?: string;
  /** Where it is not known: how to get it. */
  how?: string;
}

/** A figure, or how to get it. */
export function Figure({ name, value, note, more, how }: Properties) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      {value === undefined ? (
        <dd class="unknown">
          not known<small>{how}</small>
        </dd>
      ) : (
        <dd>
          {value} {note && <small>{note}</small>}
        </dd>
      )}
      {more && <dd class="more">{more}</dd>}
    </div>
  );
}
