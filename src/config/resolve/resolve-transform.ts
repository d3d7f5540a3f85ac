import {
  allColumns,
  droppedColumns,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
  type TransformSettings,
} from '../../core/index.ts'
import { didYouMean } from '../problems/nearest.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { resolveExtraColumns } from './extra-columns.ts'

/** Columns brought into output order, less those that the masking policies take away. */
export function resolveTransform(file: PipelineFile, problems: Problems): TransformSettings {
  const { extract, transform } = file
  const dropped = extract.resource === 'reports' ? [] : droppedColumns(transform.secret, transform.identity)
  // Where `include` is wrong itself, nothing is said about what it should name.
  const included = problems.touched(['extract', 'include']) ? [...OPTIONAL_FIELDS] : (extract.include ?? [])
  const extraColumns = resolveExtraColumns(file, problems)
  const extra = extraColumns.map(({ name }) => name)
  const own = allColumns(extract.resource, included)
    .map((column) => column.name)
    .filter((name) => !dropped.includes(name))
  const available = [...own, ...extra]
  const { columns } = transform
  if (columns !== undefined && !problems.touched(['extract', 'resource'])) {
    if (columns.length === 0)
      problems.add(['transform', 'columns'], 'expected at least one column, found an empty list')
    for (const [i, name] of columns.entries()) {
      if (available.includes(name)) continue
      const path = ['transform', 'columns', i]
      problems.add(path, whyNot(name, problems.found(path), available, dropped, extract.resource))
    }
  }
  return {
    secret: transform.secret,
    identity: transform.identity,
    maskKeyEnv: transform.mask_key_env,
    columns: columns === undefined ? available : [...own.filter((name) => columns.includes(name)), ...extra],
    extraColumns,
    onInvalid: transform.on_invalid,
    maxQuarantined: transform.max_quarantined,
  }
}

function whyNot(
  name: string,
  found: string,
  available: readonly string[],
  dropped: readonly string[],
  resource: string,
): string {
  if (dropped.includes(name)) {
    const policy = name === 'hash' ? 'transform.secret' : 'transform.identity'
    return `the column \`${name}\` is taken away by ${policy}: drop`
  }
  if (resource === 'credentials' && OPTIONAL_FIELDS.has(name)) {
    return `the column \`${name}\` is there only when extract.include names it`
  }
  if (resource === 'credentials' && KNOWN_EXTRAS.some((known) => known.name === name)) {
    return `the column \`${name}\` is there only when transform.extra_columns names it`
  }
  return `expected one of ${available.join(', ')}, found ${found}${didYouMean(name, available)}`
}
