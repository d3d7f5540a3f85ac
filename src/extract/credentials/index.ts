export { exchangedToken, type TokenInfo, testedToken } from './token-answers.ts'
export { always, type Token, type Tokens, tokenSource } from './token-source.ts'
