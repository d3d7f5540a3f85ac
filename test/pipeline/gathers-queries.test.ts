import { describe, expect, test } from 'vitest'
import { problems, read, SMALLEST } from './pipeline-file.ts'

const fileWith = (lines: string) => SMALLEST.replace('  domains: [acme.com]', lines)

test('all five kinds are accepted, and a repeated query is one', async () => {
  const { extract } = await read(
    fileWith(`  domains: [acme.com, ACME.com., Bücher.example, a_b.example]
  queries:
    - { type: domain, fqdn: Acme.Com }
    - { type: auth_domain, fqdn: login.acme.com. }
    - { type: email, email: " A@acme.com " }
    - { type: email, email: A@acme.com }
    - { type: email, email: a@acme.com }
    - { type: keyword, keyword: jane doe }
    - { type: secret, secret_env: LEAKED_PASSWORD }`),
  )
  expect(extract.queries).toEqual([
    { type: 'domain', fqdn: 'acme.com' },
    { type: 'domain', fqdn: 'xn--bcher-kva.example' },
    { type: 'domain', fqdn: 'a_b.example' },
    { type: 'auth_domain', fqdn: 'login.acme.com' },
    { type: 'email', email: 'A@acme.com' },
    { type: 'email', email: 'a@acme.com' },
    { type: 'keyword', keyword: 'jane doe' },
    { type: 'secret', secretEnv: 'LEAKED_PASSWORD' },
  ])
})

test('ten thousand domains from a file, with comments, blank lines and Windows line ends', async () => {
  const domains = Array.from({ length: 10_000 }, (_, i) => `host-${i}.example`)
  const content = `\uFEFF# ours\r\n\r\n${domains.join('  # comment\r\n')}\r\nHOST-1.example.\r\n`
  const { extract } = await read(fileWith('  domains_file: list.txt'), { files: { 'list.txt': content } })
  expect(extract.queries).toEqual(domains.map((fqdn) => ({ type: 'domain', fqdn })))
})

test('every invalid line of a domains file is reported, in order', async () => {
  const lines = Array.from({ length: 10_000 }, (_, i) => `host-${i}.example`)
  lines[16] = 'hunter2 hunter2'
  lines[4_999] = 'https://hunter2.example/'
  // Not shown.
  lines[5_000] = 'jane@hunter2.example'
  lines[5_001] = 'https://me:hunter2@beta.test/x'
  lines[9_998] = '.hunter2'
  lines[9_999] = `${'a'.repeat(250)}.com`
  const found = await problems(fileWith('  domains_file: list.txt'), {
    files: { 'list.txt': lines.join('\n') },
  })
  const expected = 'expected a domain name (letters, digits, -, _ and dots, at most 253 characters), found'
  expect(found).toEqual([
    `list.txt:17:1: ${expected} "hunter2 hunter2": the character " "`,
    `list.txt:5000:1: ${expected} "https://hunter2.example/": a URL`,
    expect.stringMatching(/^list\.txt:5001:1: (?!.*hunter2).* an e-mail address$/),
    expect.stringMatching(/^list\.txt:5002:1: (?!.*hunter2).* a URL$/),
    `list.txt:9999:1: ${expected} ".hunter2": an empty label`,
    `list.txt:10000:1: ${expected} "${'a'.repeat(60)}…": more than 253 characters`,
  ])
})

test.each([
  ['none.txt', 'does not exist'],
  ['.', 'is a directory, not a file'],
  ['latin1.txt', 'is not UTF-8 text'],
])('domains_file: %s %s', async (name, reason) => {
  const files = { 'latin1.txt': Uint8Array.of(0x62, 0xfc, 0x2e, 0x64, 0x65) }
  expect(await problems(fileWith(`  domains_file: ${name}`), { files })).toEqual([
    `p.yaml:5:17: extract.domains_file: expected a file of domains, found "${name}", which ${reason}`,
  ])
})

test('a query name too long for a folder is refused, unless queries have no folders', async () => {
  const text = fileWith(`  queries:\n    - { type: keyword, keyword: ${'ü'.repeat(50)} }`)
  expect(await problems(text)).toEqual([
    'p.yaml:6:7: extract.queries[0]: its folder name, percent-encoded, would have 314 bytes of 255; leave query out of load.partition_by',
  ])
  expect((await read(`${text}load: { partition_by: window }\n`)).extract.queries).toHaveLength(1)
})

describe('a query with a custom name', () => {
  const queries = (lines: string, identity = 'keep') =>
    fileWith(`  queries:\n${lines}`).concat(`transform: { identity: ${identity} }\n`)

  test('may be of any kind, and its request is unchanged', async () => {
    const { extract } = await read(
      queries(`    - { type: domain, fqdn: acme.com, as: ours }
    - { type: domain, fqdn: ACME.com, as: " ours " }
    - { type: auth_domain, fqdn: acme.com, as: ours }
    - { type: email, email: a@acme.com, as: Case 17/b }
    - { type: keyword, keyword: a, as: Case 17/b }
    - { type: secret, secret_env: LEAKED, as: the-one }`),
    )
    expect(extract.queries).toEqual([
      { type: 'domain', fqdn: 'acme.com', as: 'ours' },
      { type: 'auth_domain', fqdn: 'acme.com', as: 'ours' },
      { type: 'email', email: 'a@acme.com', as: 'Case 17/b' },
      { type: 'keyword', keyword: 'a', as: 'Case 17/b' },
      { type: 'secret', secretEnv: 'LEAKED', as: 'the-one' },
    ])
  })

  test.each(['keep', 'hmac', 'drop'])(
    'cannot share its name with another, under identity: %s',
    async (identity) => {
      const lines = `    - { type: email, email: a@acme.com, as: case }
    - { type: email, email: b@acme.com, as: case }
    - { type: domain, fqdn: acme.com }
    - { type: domain, fqdn: acme.org, as: acme.com }`
      expect(await problems(queries(lines, identity))).toEqual([
        'p.yaml:7:7: extract.queries[1]: another query has this name already',
        'p.yaml:9:7: extract.queries[3]: another query has this name already',
      ])
    },
  )

  test.each(['keep', 'hmac'])('has only one name, under identity: %s', async (identity) => {
    const lines = `    - { type: email, email: a@acme.com, as: case }
    - { type: email, email: a@acme.com }
    - { type: domain, fqdn: acme.com }
    - { type: domain, fqdn: Acme.com., as: other }`
    expect(await problems(queries(lines, identity))).toEqual([
      'p.yaml:7:7: extract.queries[1]: the same query already has another name',
      'p.yaml:9:7: extract.queries[3]: the same query already has another name',
    ])
  })

  test.each(['" "', '17', `"a\\tb"`, 'x'.repeat(201)])('cannot be called %s', async (as) => {
    const [problem] = await problems(queries(`    - { type: domain, fqdn: acme.com, as: ${as} }`))
    expect(problem).toMatch(
      /^p\.yaml:6:\d+: extract\.queries\[0\]\.as: expected a name of 1 to 200 characters, without control characters/,
    )
  })

  test('is required under identity: drop for queries of an identity, and only for those', async () => {
    const lines = `    - { type: email, email: a@acme.com }
    - { type: keyword, keyword: a }
    - { type: keyword, keyword: b, as: b-team }
    - { type: domain, fqdn: acme.com }
    - { type: secret, secret_env: LEAKED }`
    const needed = 'under transform.identity: drop the query needs a name that does not reveal it: add as'
    expect(await problems(queries(lines, 'drop'))).toEqual([
      `p.yaml:6:7: extract.queries[0]: ${needed}`,
      `p.yaml:7:7: extract.queries[1]: ${needed}`,
    ])
    expect((await read(queries(lines, 'hmac'))).extract.queries).toHaveLength(5)
  })

  test.each(['hmac', 'drop'])('may not contain a hidden identity, under identity: %s', async (identity) => {
    const lines = `    - { type: email, email: a@acme.com, as: case A@acme.com }
    - { type: keyword, keyword: ada, as: ADA }
    - { type: keyword, keyword: a, as: case-a }
    - { type: domain, fqdn: acme.com, as: acme.com }`
    const gives = `its as reveals what transform.identity: ${identity} hides`
    expect(await problems(queries(lines, identity))).toEqual([
      `p.yaml:6:7: extract.queries[0]: ${gives}`,
      `p.yaml:7:7: extract.queries[1]: ${gives}`,
    ])
  })
})

const domainFile = (domain: string) => SMALLEST.replace('[acme.com]', JSON.stringify([domain]))

test.each([
  ['a', 'a name without a dot; write the domain in full, such as acme.com'],
  ['10.0.0.1', 'an IP address; only domains can be searched for'],
  ['jane.doe@acme.com', 'an e-mail address'],
  ['https://jane:hunter2@acme.com/', 'a URL'],
  ['*.acme.com', 'a wildcard'],
  ['acme.com:443', 'the character ":"'],
  ['acme..com', 'an empty label'],
  [`${'a'.repeat(64)}.com`, 'more than 63 characters between two dots'],
  [`${'ü'.repeat(60)}.com`, 'more than 63 characters between two dots'],
  ['x-.acme.com', 'a - at the beginning or end of a label'],
  ['acme.c', 'a single character after the last dot'],
])('%s is no domain: %s', async (domain, fault) => {
  const [problem = ''] = await problems(domainFile(domain))
  expect(problem).toContain('p.yaml:5:13: extract.domains[0]: expected a domain name')
  expect(problem).toContain(`: ${fault}`)
  expect(problem).not.toMatch(/jane|hunter2/)
})

test.each([
  ['Bücher.Example', 'xn--bcher-kva.example'],
  ['MÜNCHEN。de.', 'xn--mnchen-3ya.de'],
  ['faß.de', 'xn--fa-hia.de'],
  ['пример.испытание', 'xn--e1afmkfd.xn--80akhbyknj4f'],
])('%s is searched for as %s', async (given, fqdn) => {
  const { extract } = await read(domainFile(given))
  expect(extract.queries).toEqual([{ type: 'domain', fqdn }])
})
