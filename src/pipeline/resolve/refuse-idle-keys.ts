import type { Problems } from '../problems/problems.ts'
import type { Path } from '../problems/tree.ts'
import { type PipelineFile, pipelineFile } from '../schema/file-schema.ts'
import { type Key, keysOf } from '../schema/key.ts'

/** Reports the keys that have no effect beside the others. */
export function refuseIdleKeys(settings: PipelineFile, problems: Problems): void {
  const refuse = (keys: readonly Key[], parent: Path): void => {
    for (const { name, whyIdle, keys: inner } of keys) {
      const path = [...parent, name]
      const why = problems.given(path) ? whyIdle(settings) : null
      if (why !== null) problems.add(path, why, 'key')
      else if (inner !== null) refuse(inner, path)
    }
  }
  refuse(keysOf(pipelineFile), [])
}
