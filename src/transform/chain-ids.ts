import { highWord, IdSet, lowWord, type PageIds } from '../core/index.ts'
import { copied, FIRST_ELEMENTS, MAX_KEPT_ELEMENTS } from './columns/index.ts'

/**
 * Tells what a chain has had before: on its last pages, and on the page that is being read. A decoder keeps one, and
 * with it the memory.
 */
export class ChainIds {
  readonly #rows = new IdSet()
  readonly #refused = new IdSet()
  readonly #newRows = new WordList()
  readonly #newRefused = new WordList()
  /** Items of this page that were there before. */
  repeated = 0

  /** Begins a page, after those given. */
  begin(recent: readonly PageIds[]): void {
    this.#rows.clear()
    this.#refused.clear()
    this.#newRows.length = 0
    this.#newRefused.length = 0
    this.repeated = 0
    for (const { rows, refused } of recent) {
      addAll(this.#rows, rows)
      addAll(this.#refused, refused)
    }
  }

  /** To be asked for every row that is to be kept. @returns false when it was there before */
  isNewRow(id: number | bigint): boolean {
    return this.#isNew(id, this.#rows, this.#newRows)
  }

  /** To be asked for every item that is to be refused, if it has an id. @returns false when it was refused before */
  isNewRefusal(id: number | bigint): boolean {
    return this.#isNew(id, this.#refused, this.#newRefused)
  }

  #isNew(id: number | bigint, known: IdSet, added: WordList): boolean {
    const low = lowWord(id)
    const high = highWord(id)
    if (!known.add(low, high)) {
      this.repeated++
      return false
    }
    added.add(low, high)
    return true
  }

  /** The ids of this page. */
  page(): PageIds {
    return { rows: this.#newRows.copy(), refused: this.#newRefused.copy() }
  }
}

function addAll(ids: IdSet, words: Int32Array): void {
  for (let i = 0; i < words.length; i += 2) ids.add(words[i]!, words[i + 1]!)
}

/** Pairs of words, one after the other. */
class WordList {
  #words = new Int32Array(2 * FIRST_ELEMENTS)
  length = 0

  add(low: number, high: number): void {
    if (this.length === this.#words.length) this.#words = copied(this.#words, new Int32Array(2 * this.length))
    this.#words[this.length++] = low
    this.#words[this.length++] = high
  }

  copy(): Int32Array<ArrayBuffer> {
    const copy = this.#words.slice(0, this.length)
    if (this.#words.length > MAX_KEPT_ELEMENTS) this.#words = new Int32Array(2 * FIRST_ELEMENTS)
    return copy
  }
}
