import type * as z from 'zod'

export class ServiceError extends Error {
  constructor(
    readonly status: number,
    readonly body: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(`HTTP ${status}`)
  }
}

/** Source: the public documentation: `{"error":{"code","message"}}`, `code` stable. */
export function serviceError(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): ServiceError {
  return new ServiceError(status, { error: { code, message } }, headers)
}

type ValidationDetail = { loc: (string | number)[]; msg: string; type: string }

/** Source: the public documentation: status 422 with `{"detail":[{"loc","msg","type"}]}`. */
export function validationError(detail: readonly ValidationDetail[]): ServiceError {
  return new ServiceError(422, { detail })
}

/** Details name paths and types, no values, which may be secret. @param where begins `loc` @throws ServiceError 422 */
export function validate<T>(schema: z.ZodType<T>, input: unknown, where: 'body' | 'query' | 'path'): T {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw validationError(parsed.error.issues.flatMap((issue) => details(issue, where)))
}

/** The parser's own message is dropped, because it quotes the text. @throws ServiceError 422 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw validationError([{ loc: ['body'], msg: 'JSON decode error', type: 'json_invalid' }])
  }
}

/** In zod's words, which name no value. */
function details(issue: z.core.$ZodIssue, where: string): ValidationDetail[] {
  const { code: type, message: msg } = issue
  const loc = [where, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))]
  if (issue.code !== 'unrecognized_keys') return [{ loc, msg, type }]
  return issue.keys.map((key) => ({ loc: [...loc, key], msg, type }))
}
