/** A place in a {@link Heap}, by which its item can be removed. */
export interface HeapNode<T> {
  readonly item: T;
  /** Index in the heap, -1 once the node has left it. Kept by the heap. */
  index: number;
}

/** A binary min-heap that can remove any of its nodes: push, pop and remove are O(log n), peek is O(1). */
export class Heap<T> {
  readonly #nodes: HeapNode<T>[] = [];
  readonly #before: (a: T, b: T) => boolean;

  /** `before(a, b)` must be a strict order; where neither is before the other, which comes first is not defined. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#nodes.length;
  }

  peek(): T | undefined {
    return this.#nodes[0]?.item;
  }

  push(item: T): HeapNode<T> {
    const node = { item, index: -1 };
    this.add(node);
    return node;
  }

  /** {@link push} for an item that is its own node, or has one already, which is in no heap. */
  add(node: HeapNode<T>): void {
    node.index = this.#nodes.length;
    this.#nodes.push(node);
    this.#up(node);
  }

  pop(): T | undefined {
    const first = this.#nodes[0];
    if (first === undefined) return undefined;
    this.remove(first);
    return first.item;
  }

  /** Whether the node was still in the heap. */
  remove(node: HeapNode<T>): boolean {
    const { index } = node;
    if (index < 0 || this.#nodes[index] !== node) return false;
    node.index = -1;
    const last = this.#nodes.pop() as HeapNode<T>;
    if (last === node) return true;
    this.#place(last, index);
    this.#up(last);
    this.#down(last);
    return true;
  }

  #place(node: HeapNode<T>, index: number): void {
    this.#nodes[index] = node;
    node.index = index;
  }

  #up(node: HeapNode<T>): void {
    let { index } = node;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#nodes[parentIndex] as HeapNode<T>;
      if (!this.#before(node.item, parent.item)) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(node, index);
  }

  #down(node: HeapNode<T>): void {
    let { index } = node;
    const { length } = this.#nodes;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= length) break;
      let child = this.#nodes[childIndex] as HeapNode<T>;
      const right = this.#nodes[childIndex + 1];
      if (right !== undefined && this.#before(right.item, child.item)) {
        child = right;
        childIndex++;
      }
      if (!this.#before(child.item, node.item)) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(node, index);
  }
}
