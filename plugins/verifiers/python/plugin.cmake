tare_python_driver(python ${CMAKE_SOURCE_DIR}/sdk/python/tare_sdk/reward_call.py)
