import { isExportError, rulesOf } from '../../core/index.ts'
import { extractPages, NotServed, type PageRequests, type ReadPage } from '../../extract/index.ts'
import { SeenCursors, withPage } from '../../rows/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'
import type { Chain, Start } from './chain.ts'
import { concernsAll, failPartition } from './chain-failure.ts'
import { commitPage } from './pages/commit-page.ts'
import { excessOf } from './pages/quarantine.ts'
import type { ChainsContext } from './run-context.ts'

/** Follows one chain from its resume position to its end, commits its pages, and decides what an error ends. */
export class ChainRun {
  readonly #run: ChainsContext
  readonly #chain: Chain
  /** Requests sent for pages that are not committed yet. */
  #requests = 0

  constructor(chain: Chain, run: ChainsContext) {
    this.#run = run
    this.#chain = chain
  }

  async follow(): Promise<void> {
    const { halt, tally } = this.#run
    await halt.withoutSpace()
    if (halt.halted) return
    tally.follows(this.#chain)
    try {
      await this.#export()
    } catch (error) {
      if (!isExportError(error)) throw error
      const ofAll = concernsAll(error, this.#run)
      if (ofAll !== null) return halt.stopFor(ofAll)
      await failPartition(this.#chain, error, this.#requests, this.#run)
    }
  }

  async #export(): Promise<void> {
    const chain = this.#chain
    const { transform } = this.#run.pipeline
    for (const key of chain.openPartitions) {
      const excess = excessOf({ key }, chain.watermark, transform, chain.foldedOf(key))
      if (excess !== null) throw excess
    }
    for (let start = await chain.next(); start !== null; start = await chain.next())
      await this.#followToEnd(start)
    this.#run.tally.finish(chain, chain.doneAtEnd)
  }

  /** Only where the cursor is refused, or served in no size, the chain begins again without it, once. */
  async #followToEnd(start: Start): Promise<void> {
    try {
      await this.#followCursors(start)
    } catch (error) {
      const isOfCursor = isExportError(error, 'cursor') || error instanceof NotServed
      if (!isOfCursor || this.#chain.folded?.next == null) throw error
      const { sizes, options } = this.#run
      await this.#followCursors(await this.#chain.withoutCursor(error, sizes, options.onLog))
    }
  }

  async #followCursors(start: Start): Promise<void> {
    const chain = this.#chain
    const { queue, halt, sizes } = this.#run
    const { cursor, first = { size: sizes.first, isTrial: false } } = start
    const { folded } = chain
    const pages = extractPages(
      this.#requestsFrom(start),
      {
        cursor,
        cursorSize: folded?.size ?? null,
        page: folded?.pages ?? 0,
        seen: new SeenCursors(cursor === null ? null : folded?.seen),
        ...first,
      },
      this.#reader(start),
    )
    // Those of a sequence that came to nothing.
    let earlier = this.#requests
    for await (const page of pages) {
      queue.begin()
      const requests = page.requests + earlier
      earlier = 0
      const excess = await commitPage({ ...page, requests }, chain, this.#run)
      this.#requests -= requests
      if (excess !== null) throw excess
      if (page.page.next === null || chain.isOver) return
      await halt.withoutSpace()
    }
  }

  #requestsFrom({ requested, since }: Start): PageRequests {
    const { query, schema, mayPrefetch, mayRestart } = this.#chain
    const { service, session, queue, sizes, pipeline } = this.#run
    const { resource, order } = pipeline.extract
    const { include } = session.schemas[schema]!
    return {
      service,
      chain: { resource, query, requested, since, include, order, secret: this.#secret },
      about: (page) => `${this.#chain.current.key}, page ${page + 1}`,
      sizes: rulesOf(resource).reading === 'list' ? null : sizes,
      mayRestart,
      mayPrefetch: () => mayPrefetch && queue.mayPrefetch,
      onRequest: () => {
        this.#requests++
      },
    }
  }

  #reader({ requested, since, recent: before, known, feed }: Start): ReadPage {
    const chain = this.#chain
    const { query } = chain
    const { session, pipeline, options } = this.#run
    const decode = session.decoderOf(chain.schema)
    const masks = { ...pipeline.transform, maskKey: options.maskKey }
    const queryValue = maskedQueryValue(query, this.#secret, masks)
    let recent = before
    return async (body, page) => {
      const [partition, own] = [chain.current.key, chain.windows.range]
      const context = { query, partition, page, requested, own, queryValue, since, recent, known, feed }
      const decoded = decode(body, context)
      recent = withPage(recent, decoded.ids)
      return decoded
    }
  }

  get #secret(): string | null {
    const { query } = this.#chain
    return query.type === 'secret' ? (this.#run.secrets.get(query.secretEnv) ?? null) : null
  }
}
