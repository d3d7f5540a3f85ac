import { ExportError, type OwnStore, type Store } from '../../core/index.ts'
import { OPEN_FOLDER, QUARANTINE_FOLDER } from '../../load/index.ts'
import { ID_FOLDER, readSharedRun } from '../../state/index.ts'

/**
 * The data set as the holder of one chain may change it: by way of a folder of its own, which the next holder takes away.
 * So one that lost its chain, and does not know it yet, can neither publish a shard nor write to one.
 * @param fence which holder of the chain this is, from 1 on
 * @param growing files of the chain that are added to under the names that they keep
 * @throws ExportError `locked` when the data set is given to the run no more
 */
export async function openChainStore(
  data: Store,
  { run, chain, fence }: { readonly run: string; readonly chain: number; readonly fence: number },
  growing: (path: string) => boolean,
): Promise<OwnStore> {
  const own = await data.own(OPEN_FOLDER, ownerOf(chain, fence), true)
  const shared = await readSharedRun(own)
  if (shared?.run !== run) {
    await own.leave()
    throw startedOver()
  }
  if (fence === 1) return own
  const names = new Set(await own.list(STATE_FOLDER))
  for (let earlier = 1; earlier < fence; earlier++) {
    const owner = ownerOf(chain, earlier)
    // Whether it is at work still nobody knows.
    if (names.has(`${OPEN_NAME}.${owner}`)) await own.takeOver(owner, true)
  }
  for (const folder of [ID_FOLDER, QUARANTINE_FOLDER]) {
    for (const name of await own.list(folder)) {
      const path = `${folder}/${name}`
      if (growing(path)) await own.renew(path)
    }
  }
  await own.settle()
  return own
}

const [STATE_FOLDER = '', OPEN_NAME = ''] = OPEN_FOLDER.split('/')

function ownerOf(chain: number, fence: number): string {
  return `c${chain}.${fence}`
}

function startedOver(): ExportError {
  return new ExportError(
    'locked',
    'The data set was started over by somebody else',
    '_state',
    'Submit the pipeline again if workers are to export it.',
  )
}
