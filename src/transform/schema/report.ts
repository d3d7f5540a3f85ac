import * as z from 'zod'
import { integer, optionalInteger, optionalText, optionalTexts, optionalTimestamp } from './schema-parts.ts'

/** A threat-flow report. Source: service spec 2.1; lenient about null, on which it is silent. */
export const reportSchema = z.object({
  id: integer,
  format_type: z.string(),
  title: z.string(),
  subtitle: optionalText,
  summary: optionalText,
  content: optionalText,
  tags: optionalTexts,
  highlights: optionalTexts,
  related_activity_uids: optionalTexts,
  prompt_preset_uid: optionalText,
  created_at: optionalTimestamp,
  published_at: optionalTimestamp,
  updated_at: optionalTimestamp,
  reading_time: optionalInteger,
  tenant_id: optionalInteger,
  organization_id: optionalInteger,
})

export type Report = z.infer<typeof reportSchema>

export const REPORT_FIELDS: ReadonlySet<string> = new Set(Object.keys(reportSchema.shape))
