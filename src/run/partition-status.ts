/** Where one partition stands; the names are those of `status --json`. */
export type PartitionStatus = {
  readonly key: string
  /** `domain.acme.com`, as in folder names. */
  readonly query: string
  readonly window: { readonly from: string; readonly until: string } | null
  readonly state: 'pending' | 'partial' | 'done' | 'failed' | 'pruned'
  /** Committed rows, those in open shards too. */
  readonly rows: number
  /** Of pages that began in it. */
  readonly requests: number
  /** Items that the service sent again within the chain. */
  readonly repeated: number
  /** Of the chain that stands in it. */
  readonly next: string | null
  readonly error: string | null
}
