import { expect, it } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { proxiesOf } from '../../src/http/proxies.ts'

const ENV = { HTTPS_PROXY: 'http://s.example:3128', HTTP_PROXY: 'http://p.example' }

function hostFor(env: Readonly<Record<string, string>>, origin: string): string | null {
  return proxiesOf(env)?.(origin)?.host ?? null
}

it('each scheme has its own variable; lower case takes precedence; the http proxy is the default for https', () => {
  expect(proxiesOf({})).toBeNull()
  expect(proxiesOf({ HTTPS_PROXY: '', NO_PROXY: 'a.example' })).toBeNull()
  expect(hostFor(ENV, 'https://a.example')).toBe('s.example:3128')
  expect(hostFor(ENV, 'http://a.example')).toBe('p.example')
  expect(hostFor({ ...ENV, https_proxy: 'l.example:8080' }, 'https://a.example')).toBe('l.example:8080')
  expect(hostFor({ HTTP_PROXY: ENV.HTTP_PROXY }, 'https://a.example')).toBe('p.example')
  expect(hostFor({ HTTPS_PROXY: ENV.HTTPS_PROXY }, 'http://a.example')).toBeNull()
})

it('NO_PROXY lists hosts with their subdomains, addresses of IPv6 in brackets or not, ports, or everything', () => {
  const straight = (list: string, origin: string) => hostFor({ ...ENV, NO_PROXY: list }, origin) === null
  expect(straight('a.example', 'https://a.example')).toBe(true)
  expect(straight('a.example', 'https://api.a.example')).toBe(true)
  expect(straight('a.example', 'https://ba.example')).toBe(false)
  expect(straight('*.A.example', 'https://api.a.example')).toBe(true)
  expect(straight('b.example, a.example:443', 'https://a.example')).toBe(true)
  expect(straight('a.example:8443', 'https://a.example:8443')).toBe(true)
  expect(straight('b.example *', 'https://a.example')).toBe(true)
  expect(straight('fd00::1', 'https://[fd00::1]')).toBe(true)
  expect(straight('[fd00::1]:8443', 'https://[fd00::1]:8443')).toBe(true)
  expect(straight('[fd00::1]:8443', 'https://[fd00::1]')).toBe(false)
  expect(straight('fd00::1', 'https://[fd00::]:1')).toBe(false)
})

it.each(['http://localhost:1', 'https://127.0.0.1', 'http://[::1]:8080', 'https://x.localhost'])(
  'never for this machine: %s',
  (origin) => {
    expect(hostFor(ENV, origin)).toBeNull()
  },
)

it('a name that only begins like an address of this machine uses the proxy', () => {
  expect(hostFor(ENV, 'http://127.example.com')).not.toBeNull()
})

it.each([
  ['user:hunter2', 'The proxy is no address'],
  ['socks5://me:hunter2@p.example', 'The proxy p.example is no address'],
])('rejects %s, naming its host, without user and password', (value, host) => {
  const attempt = () => proxiesOf({ HTTPS_PROXY: value })
  expect(attempt).toThrow('environment variable HTTPS_PROXY')
  expect(attempt).toThrow(host)
  expect(attempt).toThrow(expect.toSatisfy((error) => isExportError(error, 'config')))
  expect(attempt).not.toThrow('hunter2')
})
