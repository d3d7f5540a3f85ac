import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { connectPostgres } from '../../src/warehouse/postgres/postgres-connection.ts'
import { refusal } from '../disk/errors.ts'
import { CERTIFICATE_PATH as PEM } from '../e2e/support/proxy.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { PASSWORD } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { elsewhere, front } from '../support/postgres/front.ts'

/** Sets variables for one test; undefined removes one. */
function environment(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
}

async function reach(url: string): Promise<void> {
  await (await connectPostgres(url, url, new AbortController().signal)).close()
}

const failure = (url: string) => refusal(reach(url))

it('errors name the cause, and a rejected password gives exit 3', async () => {
  environment({ PGPASSWORD: PASSWORD, PGPASSFILE: join(scratchFolder(), 'none') })
  const url = await newDatabase()
  await reach(url)
  const wrong: readonly [url: string, says: RegExp, code: number][] = [
    [url.replace(/test_\d+/, 'nowhere'), /^There is no such database/, 1],
    [url.replace(/:\d+\//, ':1/'), /^PostgreSQL cannot be reached at 127\.0\.0\.1:1 \(ECONNREFUSED\)/, 1],
    [
      'postgres://me@no.invalid/db',
      /^PostgreSQL cannot be reached at no\.invalid:5432 \((?:ENOTFOUND|EAI_)/,
      1,
    ],
    [`postgres://me@localhost/db?host=${scratchFolder()}`, /^PostgreSQL cannot be reached at \/.*ENOENT/, 1],
    [url.replace('postgres@', 'nobody@'), /^PostgreSQL refuses the user or the password/, 3],
  ]
  for (const [to, says, code] of wrong) {
    const error = await failure(to)
    expect(error.message).toMatch(says)
    expect(error.message).not.toContain(PASSWORD)
    expect(exitCodeOf(error, null)).toBe(code)
  }
  environment({ PGPASSWORD: 'wrong one' })
  const refused = await failure(url)
  expect(refused.message).toMatch(/^PostgreSQL refuses the user or the password .*PGPASSWORD/)
  expect(exitCodeOf(refused, null)).toBe(3)
})

it('the password comes from ~/.pgpass; a file that others can read is not used, and the error says so', async () => {
  const file = join(scratchFolder(), 'pgpass')
  environment({ PGPASSWORD: undefined, PGPASSFILE: file })
  const url = await newDatabase()
  const missing = await failure(url)
  expect(missing.message).toMatch(/asks for the password of the user, and none is set/)
  expect(exitCodeOf(missing, null)).toBe(3)
  await writeFile(file, `*:*:*:postgres:${PASSWORD}\n`, { mode: 0o600 })
  await reach(url)
  await chmod(file, 0o644)
  expect((await failure(url)).message).toMatch(/is not used, since others may read it: chmod 600/)
})

it('nothing is sent to another machine unencrypted, unless the URL allows it', async () => {
  environment({ PGPASSWORD: PASSWORD, PGSSLMODE: undefined })
  const url = await newDatabase()
  const { url: to, heard } = await front(url, 'N')
  for (const mode of ['', '?sslmode=prefer', '?sslmode=require', '?ssl=true']) {
    const error = await failure(`${elsewhere(to)}${mode}`)
    expect(error.message).toMatch(
      /0\.0\.0\.0:\d+ offers no TLS, and nothing is sent to another machine in clear.*sslmode=disable/,
    )
    expect(exitCodeOf(error, null)).toBe(1)
  }
  // Each is a request for TLS, and nothing more.
  expect(heard.map((bytes) => bytes.toString('hex'))).toEqual(Array(4).fill('0000000804d2162f'))
  // A server without TLS.
  expect((await failure(elsewhere(url))).message).toMatch(/offers no TLS/)
  await reach(`${elsewhere(url)}?sslmode=disable`)
  environment({ PGSSLMODE: 'disable' })
  await reach(elsewhere(url))
  expect((await failure(`${elsewhere(url)}?sslmode=verify-full`)).message).toMatch(/offers no TLS/)
  expect((await failure(`${url}?sslmode=loose`)).message).toMatch(/offers no TLS/)
})

it('certificate and host name are checked; the error names the reason', async () => {
  environment({ PGPASSWORD: PASSWORD, PGSSLMODE: undefined, PGSSLROOTCERT: undefined })
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const { url } = await front(await newDatabase(), 'S')
  for (const to of [elsewhere(url), `${url}?sslmode=require`, `${url}?sslmode=verify-ca`]) {
    expect((await failure(to)).message).toMatch(
      /certificate of PostgreSQL at .* is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*sslrootcert=<file>/,
    )
  }
  await reach(`${url}?sslmode=verify-full&sslrootcert=${PEM}`)
  expect((await failure(`${elsewhere(url)}?sslrootcert=${PEM}`)).message).toMatch(
    /certificate of PostgreSQL at 0\.0\.0\.0:\d+ is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
  )
  await reach(`${elsewhere(url)}?sslmode=no-verify`)
  environment({ PGSSLROOTCERT: PEM, PGSSLMODE: 'verify-full' })
  await reach(url)
  expect(await failure(`${url}?sslrootcert=/nowhere.pem`)).toMatchObject({
    kind: 'config',
    what: expect.stringContaining('ENOENT'),
  })
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
})
