package store

// ofdSetLock is the value of F_OFD_SETLK, which fcntl(2) describes and Linux supports since 3.15.
const ofdSetLock = 37
