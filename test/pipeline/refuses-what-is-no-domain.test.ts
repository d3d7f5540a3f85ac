import { expect, test } from 'vitest'
import { problems, read, SMALLEST } from './pipeline-file.ts'

const fileWith = (domain: string) => SMALLEST.replace('[acme.com]', JSON.stringify([domain]))

test.each([
  ['a', 'a name without a dot; write the domain in full, such as acme.com'],
  ['localhost', 'a name without a dot; write the domain in full, such as acme.com'],
  ['10.0.0.1', 'an IP address; only domains can be searched for'],
  ['2001:db8::1', 'an IP address; only domains can be searched for'],
  ['10.1', 'an IP address; only domains can be searched for'],
  ['jane.doe@acme.com', 'an e-mail address'],
  ['https://jane:hunter2@acme.com/', 'a URL'],
  ['*.acme.com', 'a wildcard'],
  ['acme.com:443', 'the character ":"'],
  ['acme.com acme.org', 'the character " "'],
  ['acme.com, none', 'the character ","'],
  ['acme..com', 'an empty label'],
  [`${'a'.repeat(64)}.com`, '64 characters between two dots; 63 are the most'],
  [`${'ü'.repeat(60)}.com`, '66 characters between two dots; 63 are the most'],
  ['-x.test', 'a - at the beginning or end of a label'],
  ['x-.acme.com', 'a - at the beginning or end of a label'],
  ['acme.c', 'a single character after the last dot'],
])('%s is no domain: %s', async (domain, fault) => {
  const [problem = ''] = await problems(fileWith(domain))
  expect(problem).toContain('p.yaml:5:13: extract.domains[0]: expected a domain name')
  expect(problem).toContain(`: ${fault}`)
  expect(problem).not.toMatch(/jane|hunter2/)
})

test.each([
  ['Bücher.Example', 'xn--bcher-kva.example'],
  ['MÜNCHEN。de.', 'xn--mnchen-3ya.de'],
  ['faß.de', 'xn--fa-hia.de'],
  ['пример.испытание', 'xn--e1afmkfd.xn--80akhbyknj4f'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['_dmarc.acme.com', '_dmarc.acme.com'],
])('%s is searched for as %s', async (given, fqdn) => {
  const { extract } = await read(fileWith(given))
  expect(extract.queries).toEqual([{ type: 'domain', fqdn }])
})
