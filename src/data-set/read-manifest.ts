import { ExportError, isExportError, type Store } from '../core/index.ts'
import { MANIFEST_PATH, type Manifest } from '../state/index.ts'

/**
 * Another command may replace the manifest and remove shards meanwhile: a failure, or a result that `isProblem`, counts
 * only if the manifest is still the same, else all is read again.
 */
export async function readSteadily<T>(
  store: Store,
  read: (bytes: Uint8Array | null) => Promise<T>,
  isProblem: (result: T) => boolean = () => false,
  mayRepeat: () => boolean = () => true,
): Promise<T> {
  for (let bytes = await store.read(MANIFEST_PATH); ; ) {
    let result: { readonly value: T } | null = null
    let failure: unknown = null
    try {
      result = { value: await read(bytes) }
      if (!isProblem(result.value)) return result.value
    } catch (error) {
      if (!isExportError(error)) throw error
      failure = error
    }
    const again = await store.read(MANIFEST_PATH)
    if (isSame(bytes, again) || !mayRepeat()) {
      if (result === null) throw failure
      return result.value
    }
    bytes = again
  }
}

export function isSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0
}

/** @throws ExportError `damaged` with the first that is missing or has another length */
export async function requireListed(store: Store, { shards }: Manifest): Promise<void> {
  const expected = shards.map(({ path, bytes }) => ({ path, bytes }))
  const [first, ...others] = await store.mismatches(expected)
  if (first === undefined) return
  const more = others.length === 0 ? '' : `, and ${others.length} more`
  throw new ExportError({
    kind: 'damaged',
    what: `A shard is missing or not as long as the manifest says${more}`,
    where: first.path,
    next: 'List the differences with `verify`, which prints the command that repairs them.',
  })
}
