// Minor versions of Wireshark that the plugin is tested with. Included by its build script and by xtask.
[(4, 0), (4, 4), (4, 6)]
