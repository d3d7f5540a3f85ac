type Batch<T> = {
  readonly folders: ReadonlySet<string>
  readonly items: T[]
  readonly done: Promise<void>
}

/**
 * A queue of work on folders. Items that share a folder are processed in the order in which they were added, all others
 * concurrently. An item that has to wait joins the batch that already waits for the same folders.
 */
export class FolderQueue<T> {
  readonly #work: (items: readonly T[]) => Promise<void>
  readonly #all = new Set<Promise<void>>()
  /** The last work on each folder. */
  readonly #last = new Map<string, Promise<void>>()
  /** Batches that have not started, by each of their folders. */
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
    // After a failure the content of the folders is unknown: later work on them fails as well.
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

  /** Whether there is work on a folder, running or waiting. */
  isBusy(folder: string): boolean {
    return this.#last.has(folder)
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#all)
  }

  /** The last batch of all these folders, if it has not started. */
  #waitingFor(folders: ReadonlySet<string>): Batch<T> | undefined {
    const [first] = folders
    const batch = first === undefined ? undefined : this.#waiting.get(first)
    if (batch === undefined) return undefined
    for (const folder of folders) if (this.#waiting.get(folder) !== batch) return undefined
    return batch
  }
}
