import { knownNamingKey } from '../../config/index.ts'
import type { Pipeline } from '../../core/index.ts'
import { type Completeness, readCompleteness } from '../../run/index.ts'
import type { Io } from '../command-line/io.ts'
import { count, counted } from '../terminal/quantities.ts'

/** Whether a data set is complete, as one sentence without its full stop. */
export function completenessText(completeness: Completeness): string {
  const { complete, partitions } = completeness
  if (!complete) return `The export is INCOMPLETE: ${whatIsMissing(completeness)}`
  return partitions === null
    ? 'The export is complete'
    : `The export is complete: ${partitions.total === 1 ? 'its one partition' : `all ${count(partitions.total)} partitions`}`
}

/** What an export that is not complete lacks. */
function whatIsMissing({ partitions }: Completeness): string {
  if (partitions === null || partitions.done === partitions.total) return 'it has no _SUCCESS'
  const { total, failed, pending } = partitions
  const of = ` of ${counted(total, 'partition')}`
  const parts = [
    ...(failed > 0 ? [`${count(failed)}${of} failed`] : []),
    ...(pending > 0 ? [`${count(pending)}${failed > 0 ? '' : of} not done`] : []),
  ]
  return parts.join(', ')
}

/** The same, read for a command that is about something else. */
export async function completenessFor(
  pipeline: Pipeline,
  io: Pick<Io, 'env' | 'cwd'>,
): Promise<Completeness> {
  return readCompleteness(pipeline, await knownNamingKey(pipeline, io))
}
