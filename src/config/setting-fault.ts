import { pipelineFile } from './file-schema.ts'
import type { Path } from './tree.ts'

/**
 * What is wrong with a value for one key of a pipeline file, to be read after "expected"; null: nothing. What the key needs
 * beside it is not looked at.
 */
export function settingFault(path: Path, value: unknown): string | null {
  const [section = '', ...keys] = path
  const base: Readonly<Record<string, object>> = {
    service: { base_url: 'https://host.invalid' },
    extract: keys[0] === 'windows' ? { windows: { from: '2024-01-01' } } : {},
  }
  const file = { name: 'unnamed', service: base.service, extract: base.extract }
  const result = pipelineFile.safeParse(
    keys.length === 0 ? { ...file, [section]: value } : put(file, path, value),
  )
  if (result.success) return null
  const [issue] = result.error.issues
  const fault: unknown = issue?.code === 'custom' ? issue.params?.fault : undefined
  return `${issue?.message}${typeof fault === 'string' ? `, found ${fault}` : ''}`
}

function put(root: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value
  const inner = typeof root === 'object' && root !== null ? root : {}
  return { ...inner, [key]: put(Reflect.get(inner, key), rest, value) }
}
