tare: tiny.ini: no such configuration file
