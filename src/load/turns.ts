type Batch<T> = {
  readonly folders: ReadonlySet<string>
  readonly items: T[]
  readonly done: Promise<void>
}

/**
 * Work on folders: what has one in common is done in the order in which it came, all else side by side. What comes while
 * something else of its folders is still being done is done together with what waits there already.
 */
export class Turns<T> {
  readonly #work: (items: readonly T[]) => Promise<void>
  readonly #all = new Set<Promise<void>>()
  /** The last work on each folder. */
  readonly #last = new Map<string, Promise<void>>()
  /** What has not begun yet, by each of its folders. */
  readonly #waiting = new Map<string, Batch<T>>()

  constructor(work: (items: readonly T[]) => Promise<void>) {
    this.#work = work
  }

  add(folders: ReadonlySet<string>, item: T): Promise<void> {
    const waiting = this.#waitingFor(folders)
    if (waiting !== undefined) {
      waiting.items.push(item)
      return waiting.done
    }
    const before = [...folders].flatMap((folder) => this.#last.get(folder) ?? [])
    const items = [item]
    // What failed has left its folders in doubt: whatever comes behind it fails as well.
    const done = Promise.all(before).then(() => {
      for (const folder of folders) if (this.#waiting.get(folder) === batch) this.#waiting.delete(folder)
      return this.#work(items)
    })
    const batch: Batch<T> = { folders, items, done }
    const forget = (): void => {
      this.#all.delete(done)
      for (const folder of folders) if (this.#last.get(folder) === done) this.#last.delete(folder)
    }
    this.#all.add(done)
    for (const folder of folders) {
      this.#last.set(folder, done)
      this.#waiting.set(folder, batch)
    }
    done.then(forget, () => this.#all.delete(done))
    return done
  }

  /** Whether something is being done, or to be done, on a folder. */
  isTaken(folder: string): boolean {
    return this.#last.has(folder)
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#all)
  }

  /** What this can be done together with: it waits, and has all these folders, and nothing else is behind it there. */
  #waitingFor(folders: ReadonlySet<string>): Batch<T> | undefined {
    const [first] = folders
    const batch = first === undefined ? undefined : this.#waiting.get(first)
    if (batch === undefined) return undefined
    for (const folder of folders) if (this.#waiting.get(folder) !== batch) return undefined
    return batch
  }
}
