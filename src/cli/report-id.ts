import { ExportError } from '../core/index.ts'

/** The id of a threat-flow report as people type it. @throws ExportError 'config' when it is none */
export function reportId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(id)) return id
  throw new ExportError(
    'config',
    'Report ids are whole numbers from 1 on',
    '',
    'See `spillway report --help`.',
  )
}
