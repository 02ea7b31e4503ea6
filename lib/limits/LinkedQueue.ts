/** A place in a {@link LinkedQueue}, by which its item can be removed. */
export interface QueueNode<T> {
  readonly item: T;
  /** Kept by the queue. */
  queued: boolean;
  before: QueueNode<T> | undefined;
  after: QueueNode<T> | undefined;
}

/** First in, first out; any item can leave from the middle. Every operation is O(1). */
export class LinkedQueue<T> {
  #first: QueueNode<T> | undefined;
  #last: QueueNode<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T): QueueNode<T> {
    const node: QueueNode<T> = { item, queued: true, before: this.#last, after: undefined };
    if (this.#last) this.#last.after = node;
    else this.#first = node;
    this.#last = node;
    this.#size++;
    return node;
  }

  peek(): T | undefined {
    return this.#first?.item;
  }

  peekLast(): T | undefined {
    return this.#last?.item;
  }

  shift(): T | undefined {
    const node = this.#first;
    if (node === undefined) return undefined;
    this.remove(node);
    return node.item;
  }

  /** Whether the node was still in the queue. */
  remove(node: QueueNode<T>): boolean {
    if (!node.queued) return false;
    node.queued = false;
    if (node.before) node.before.after = node.after;
    else this.#first = node.after;
    if (node.after) node.after.before = node.before;
    else this.#last = node.before;
    // A node that someone still holds must not keep others alive.
    node.before = undefined;
    node.after = undefined;
    this.#size--;
    return true;
  }
}
