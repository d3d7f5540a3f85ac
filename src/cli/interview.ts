import { type StarterAnswers, settingFault } from '../config/index.ts'

/** Asks one question; resolves to the answer as it was typed. */
export type Ask = (question: string) => Promise<string>

/** Asks for what a first pipeline needs; every answer is held against what a pipeline file allows. */
export async function interview(
  ask: Ask,
  tell: (line: string) => void,
  usual: Pick<StarterAnswers, 'name' | 'from'>,
): Promise<StarterAnswers> {
  const one = async (question: string, byDefault: string, ...path: string[]): Promise<string> => {
    for (;;) {
      const answer = (await ask(`${question} [${byDefault}]: `)).trim() || byDefault
      // A reference to a variable is checked once there is a value.
      const fault = answer.includes('${') ? null : settingFault(path, answer)
      if (fault === null) return answer
      tell(`  expected ${fault}`)
    }
  }
  const domains = async (): Promise<readonly string[]> => {
    for (;;) {
      const given = (await ask('Domains to look for, separated by spaces: ')).split(/[\s,]+/).filter(Boolean)
      const fault = given.length === 0 ? 'at least one domain' : settingFault(['extract', 'domains'], given)
      if (fault === null) return given
      tell(`  expected ${fault}`)
    }
  }
  return {
    name: await one('Name of the export', usual.name, 'name'),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
    baseUrl: await one('Base URL of the service', '${SPILLWAY_BASE_URL}', 'service', 'base_url'),
    domains: await domains(),
    from: await one('Imported from (inclusive)', usual.from, 'extract', 'windows', 'from'),
    until: await one('until (exclusive)', 'now', 'extract', 'windows', 'until'),
    every: await one(
      'A folder for every: <n>h, <n>d, week, month, year',
      'month',
      'extract',
      'windows',
      'every',
    ),
    format: await one('Format: parquet, csv', 'parquet', 'load', 'format'),
    secret: await one(
      'Leaked secrets: redact, drop, partial, hmac, plaintext',
      'redact',
      'transform',
      'secret',
    ),
  }
}
