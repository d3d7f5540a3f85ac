import { ROW_FOLDERS, type Store, SUMMARY_PAGE_PATH } from '../../core/index.ts'
import { ORPHANS, QUARANTINE_FOLDER, SEALED_FOLDER } from '../../load/index.ts'
import { DELTA_FOLDER, ICEBERG_FOLDER, METADATA_FOLDER } from '../../open-tables/index.ts'
import {
  CHECKPOINT_PATH,
  LOG_FOLDER,
  MANIFEST_PATH,
  SIGNATURE_PATH,
  SUPPRESSION_PATH,
} from '../../state/index.ts'
import { SUCCESS_PATH } from '../settle/success-mark.ts'

/** Call it before any change: the names in the folder. @throws ExportError `storage` naming a symbolic link */
export async function refuseLinks(store: Store): Promise<readonly string[]> {
  // One list, instead of a request for each path that a bucket does not have.
  const names = await store.list('')
  for (const path of [
    SUCCESS_PATH,
    MANIFEST_PATH,
    SIGNATURE_PATH,
    SUMMARY_PAGE_PATH,
    CHECKPOINT_PATH,
    QUARANTINE_FOLDER,
    ORPHANS,
    LOG_FOLDER,
    SEALED_FOLDER,
    SUPPRESSION_PATH,
    ICEBERG_FOLDER,
    METADATA_FOLDER,
    DELTA_FOLDER,
    ...ROW_FOLDERS,
  ]) {
    const [first = ''] = path.split('/')
    // The state may be elsewhere.
    if (first === '_state' || names.includes(first)) await store.size(path)
  }
  return names
}
