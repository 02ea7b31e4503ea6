/** The highest share of marked events in any sliding window, in windows of a sixtieth that are added up. */
export class ShareWindow {
  readonly #slotMs: number;
  readonly #least: number;
  readonly #slots: { readonly index: number; marked: number; all: number }[] = [];
  #marked = 0;
  #all = 0;
  worst = 0;

  /** `least`: events that a window must hold to count. */
  constructor(windowMs: number, least: number) {
    this.#slotMs = windowMs / 60;
    this.#least = least;
  }

  add(atMs: number, marked: boolean): void {
    const index = Math.floor(atMs / this.#slotMs);
    let slot = this.#slots.at(-1);
    if (slot === undefined || slot.index !== index) this.#slots.push((slot = { index, marked: 0, all: 0 }));
    slot.all++;
    this.#all++;
    if (marked) {
      slot.marked++;
      this.#marked++;
    }
    for (let oldest = this.#slots[0]; oldest !== undefined && oldest.index <= index - 60; oldest = this.#slots[0]) {
      this.#slots.shift();
      this.#all -= oldest.all;
      this.#marked -= oldest.marked;
    }
    if (this.#all >= this.#least) this.worst = Math.max(this.worst, this.#marked / this.#all);
  }
}
