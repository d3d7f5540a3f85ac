import { expect, it } from 'vitest'
import { runCli } from '../support/run-cli.ts'

const AT_EXIT = `import net from 'node:net'
process.on('exit', () => process.stderr.write(String(net.getDefaultAutoSelectFamilyAttemptTimeout())))`

it('an address of a host is tried for seconds before the next one, by every client', async () => {
  const preload = `data:text/javascript,${encodeURIComponent(AT_EXIT)}`
  const { code, stderr } = await runCli({ args: ['schema'], env: { NODE_OPTIONS: `--import ${preload}` } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '2500' })
})
