/** Partitions that have to be replaced together. */
export class PartitionGroups {
  readonly #parents = new Map<string, string>()

  get size(): number {
    return this.#parents.size
  }

  join(partitions: readonly string[]): void {
    const [first] = partitions
    for (const partition of partitions) {
      if (!this.#parents.has(partition)) this.#parents.set(partition, partition)
      if (first !== undefined) this.#parents.set(this.#root(partition), this.#root(first))
    }
  }

  /** Joins partitions if one of them is in a group. */
  spread(partitions: readonly string[]): void {
    if (partitions.length > 1 && partitions.some((partition) => this.#parents.has(partition)))
      this.join(partitions)
  }

  rootOf(partitions: readonly string[]): string | null {
    for (const partition of partitions) if (this.#parents.has(partition)) return this.#root(partition)
    return null
  }

  *members(): Generator<readonly [partition: string, root: string]> {
    for (const partition of this.#parents.keys()) yield [partition, this.#root(partition)]
  }

  #root(partition: string): string {
    let at = partition
    for (
      let parent = this.#parents.get(at);
      parent !== undefined && parent !== at;
      parent = this.#parents.get(at)
    ) {
      at = parent
    }
    return at
  }
}
