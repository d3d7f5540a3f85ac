import { workersSurviveEverything } from './support/survival.ts'

workersSurviveEverything('postgres')
