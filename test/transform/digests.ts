/**
 * Digests of one made-up password, `Correct-Horse-9!`, by what made them: passlib 1.7, libxcrypt 4.4, Django 3.2,
 * Werkzeug 2.2 and Python's hashlib, with the fewest rounds that each takes. WordPress, phpBB, Drupal and ASP.NET after
 * their documentation.
 */
export const DIGESTS: Readonly<Record<string, string>> = {
  'md5 in hex': 'ae5bf1de906a22bd3c96b7ec4fc4d064',
  'sha1 in hex': 'd87a1ee74f2aea82d741e105c636edfed67b69eb',
  'sha224 in hex': '3e7fd1c58e93353b362a845114249461db5c3439fa997e3c95c32aae',
  'sha256 in hex': 'caac6ca8be26ec69fda9065732ac4f05ac5355061e4aa201c40fcb4a4d61d64c',
  'sha384 in hex':
    '5cf46056e1dd1804af9e2074767938494d48c4e50784da27ae55075b77a9a439e2be3bc3e594e3030f58b1d8f1a33152',
  'sha512 in hex':
    '741640d8619a6c47240a3a884a4f30a73d6ebfbd766a3144530bf32ce85468a2687a85798d9eef9192553d5eee7a9702882ecf585ad28d9b961e8a3a1bd5ebba',
  'md5(secret+salt):salt': 'c3d42e4436e0f4353c593a741e9b6177:k3f9',
  'salt:md5(salt+secret)': 'k3f9:2a1c1a1249a47cb1985a1446755ca151',
  'sha256:salt': '7e4f1ad1c8f49e781a9679827d94e6634157813a0abb16cfdb31a27782d69369:k3f9',
  'passlib bcrypt': '$2b$04$l/.x54b.sqOBxza1g/gQ4OzxDLlbOKeMascVbIOoxKIpEvaqhv6HC',
  'passlib md5_crypt': '$1$I.Y77C5r$SoaR.Fs7YndBSpfNF9Bxh.',
  'passlib sha256_crypt': '$5$rounds=1000$6LVDab974DkyobG6$Z1rw4SYF6sfShah201rQMw1ic1CPyDcEu.SH8B6kT37',
  'passlib sha512_crypt':
    '$6$rounds=1000$J71V8bHYzH8nc45h$4yAcdjarPLeae3PIR6C6wggoelhhB2Ziud90Tqb9hzZLG31TZneXyS0FczyxnFTuLOxaxar4VmIKJE2op0Lnu1',
  'passlib apr_md5_crypt': '$apr1$MPApD5P6$zE1GOFMG43wzuQ3hTsUZg.',
  'passlib sun_md5_crypt': '$md5,rounds=34000$2aCp3TBd$$McqLocbY.XkoeQq25GuY4/',
  'passlib sha1_crypt': '$sha1$1$HI6yjecY$7lnmtMOW4X1U/rfr8ikVP8.69PdV',
  'passlib phpass': '$P$5ZWBsKbw7MA3AzO1ofoSEmIGyfpmGd/',
  'passlib pbkdf2_sha512':
    '$pbkdf2-sha512$1$.P/fu7c2hvA.Z6wVYoyxFg$LASkvsaFMU7V26M2prsDyANNKFjUdLAWN1OkvGYJHC7g/x/tlPR1tJPa2dTb8VxngPDa2ksP89vIRUYTY2Wrjw',
  'passlib argon2': '$argon2id$v=19$m=102400,t=2,p=8$s5ZyrhUiZIzReo8xZmyN0Q$5pE/po3/VMPHMod7gICBOA',
  'passlib ldap_md5': '{MD5}rlvx3pBqIr08lrfsT8TQZA==',
  'passlib ldap_sha1': '{SHA}2Hoe508q6oLXQeEFxjbt/tZ7aes=',
  'passlib ldap_salted_md5': '{SMD5}0s30NX3RpwDKLOsk30letoEw5hw=',
  'passlib ldap_salted_sha1': '{SSHA}FYX4llX9q72PioPshlTblb5V6gsXwnhP',
  'passlib ldap_salted_sha512':
    '{SSHA512}hOT4m5uijs4NiBh1mm3SATn/IOLp+wxFcJbfjr8g5C8XqnbpJ1ivf1OXLjo+1n6MO2UZQNpRxvC+7ZqqitdYf0PoPeccY8yZ',
  'passlib ldap_pbkdf2_sha256':
    '{PBKDF2-SHA256}1$nLM2pvSek9IaA.BcizFm7A$zu4apZ04Bb2YZ9TLphDmLrnJZDf5zzL9lvgbLVMO27A',
  'passlib ldap_des_crypt': '{CRYPT}DGNYrQkg7b/Yw',
  'passlib mssql2000':
    '0x0100E4BCD71A8F9C12A6FC83ABA044DC5A2B600426666B9BA4A9F71639ED4E3D105E5F7A6C375F35A196F73B07B9',
  'passlib mssql2005': '0x01007FEFBDF76899E16C7114560B86E499429A14F0D94612E564',
  'passlib mysql41': '*9EB45AC68A31F8CB2D5896308A61F3C3CC53096D',
  'passlib oracle11': 'S:8D4BF9A4723C5682F1BCEE09214329E33F12B0DF7E93958D0874D244E098',
  'passlib bsd_nthash': '$3$$d62d7a1b6be0711adda658bbf6bd43b3',
  'passlib atlassian_pbkdf2_sha1':
    '{PKCS5S2}rxXiXKvVGgNgjJFSCuHcO1nrb3BbdcJamzReTAFq5KMegD9+C0A0EJhJAGIfKfnN',
  'passlib grub_pbkdf2_sha512':
    'grub.pbkdf2.sha512.1.BD97524A69AD3506200400A01442C8B93766CC39670CA13466CC39873086F07E0F614C69CDD9BB57CA99536AAD550A4168AD55CA594B692D45A89552EA5D2BA5.602849DFE787134922065B067CE4C5BF7A4E539110F91865F48B0A0847196470391880DCF9F6B36C0A62D93949A3AB223C2BC07FA9DD3E8A94450949AD4030BE',
  'passlib cta_pbkdf2_sha1': '$p5k2$1$l9Ja6z3HuLd2TomxtpbSOg==$fjdY4wKDG4ploQRcf2CGOMbNQUE=',
  'passlib fshp': '{FSHP1|16|1}USpFKOX8/98bYwzBmFNK6UI1R3nomMND8M9E/wZJ0S1Y8cpjzj+jWw0n2WFfXnBV',
  'passlib postgres_md5': 'md55210049c04c3cc4b1a9b74e6a2207c9a',
  'passlib scram':
    '$scram$1000$H0PoPWfsPSek9N57$sha-1=DW/1j9C684YNUL/F2aBtCB2Ol7o,sha-256=bc.6BUAyISZeN9UFSCeGEyOzNmBdCveFKjKw5YQ6ZEk,sha-512=4wXqSg9SOcDiiC7lbnli/AWE2Zmhzl88aL8.eTgx/CoEZgyJfR7EP5zsKQ2Q2DsU1C7VA59nitvg7JrvFPN9pQ',
  'LM:NT': '30b152d318ad78a1686e790ec8de4548:d62d7a1b6be0711adda658bbf6bd43b3',
  'libcrypt $y$': '$y$j9T$IZTGsMM6b/c9hgJV4JRr3/$3sEb6pBwn3iwK0tBuvvXe5CfzHZ.LzukwH8Ym84KQS0',
  'libcrypt $7$': '$7$CU..../....lzAUhE0we6S1mK9mS5i9b1$HGYJgYGAl2axFmD4VJhJj57RC0qy6H6eEubt/aAcxO/',
  'libcrypt $gy$': '$gy$j9T$DtkkRmLtSuWV9QDd60Zuv.$hiR2tsoDCYoXkpkzWeAEFfiZQrfLOH8f2Sag0U.hJV5',
  $2y$: '$2y$04$l/.x54b.sqOBxza1g/gQ4OzxDLlbOKeMascVbIOoxKIpEvaqhv6HC',
  'WordPress 6.8': '$wp$2y$04$GbMmKOioL3xnymoGUut8aeEsCV1rJQBGpX4ZMxDjVZCyO.PJ2eghG',
  'phpBB 3': '$H$5ZWBsKbw7MA3AzO1ofoSEmIGyfpmGd/',
  'Django pbkdf2_sha256':
    'pbkdf2_sha256$260000$yjEllEzV3SrcI3f3XADLWZ$gHx1EtkSI5VKn2SIkXey8a34o6v1/1OPVhBNSIOIcj8=',
  'Django argon2':
    'argon2$argon2id$v=19$m=102400,t=2,p=8$UlZQR0lwNFEzZWZvcHVrZkxERW1YWA$lJ/uESk1ca7iIeNlvK44OA',
  'Django bcrypt': 'bcrypt$$2b$12$n4gotVzGqK6rahTKT6bz3uCgbwQeUni3RJOlL5N8681PmiKHAZ0TK',
  'Django sha1': 'sha1$Gs8dBLj6h30ZsLlXM3cwrD$d547556b0c850784d787f727709c9a67fd1ab3df',
  'werkzeug pbkdf2:sha256:1000':
    'pbkdf2:sha256:1000$ZTcviHUOdJ02NVSY$090d75b1f589f2cc827fbf3989764237aacac563c7d024375a9dec5fa5006585',
  'Drupal 7': '$S$88charSalJYyibzOShDPCM90XNsk2RcfycGqpOA8WPqlhzy3RlUZ',
  'Drupal 7 updated': 'U$S$88charSalJYyibzOShDPCM90XNsk2RcfycGqpOA8WPqlhzy3RlUZ',
  'ASP.NET Identity 2': 'ACsmFCKENapaZbhcvJEknS0xy+GQs6XdIRgxI0k0zVj6IrVZIItha7Y5RyeaxmSGXg==',
  'ASP.NET Identity 3':
    'AQAAAAEAACcQAAAAECsmFCKENapaZbhcvJEknS0Q57LC1mLqjqLxGLPXP1hRRAgqel4btuIeZfoA01svdA==',
  'MD5 after 0x': '0xAE5BF1DE906A22BD3C96B7EC4FC4D064',
  'Spring Security': '{bcrypt}$2a$04$l/.x54b.sqOBxza1g/gQ4OzxDLlbOKeMascVbIOoxKIpEvaqhv6HC',
  'SQL Server 2012':
    '0x0200F5A1C0DE75752785B8FF7C31A50FBF49057A61611D63A1323BEF84A8CF4B3FC222556C1E26EC95D15800BC4D967AC770BCC59A47227A31AB572C786063901BC65E733620',
}
