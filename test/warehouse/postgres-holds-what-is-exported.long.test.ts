import { tablesHoldWhatIsExported } from './table-suite.ts'

tablesHoldWhatIsExported('postgres')
